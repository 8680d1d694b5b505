(* A program that starts others, among them itself, and at last becomes another one. *)

let allocate n = List.length (Sys.opaque_identity (List.init n (fun i -> (i, i))))

let () =
  match Sys.argv with
  | [| _; "child" |] -> Printf.printf "child %d\n" (allocate 30_000)
  | [| _; "last" |] -> Printf.printf "last %d\n" (allocate 30_000)
  | _ ->
      Printf.printf "first %d\n%!" (allocate 60_000);
      let self = Sys.executable_name in
      let pid = Unix.create_process self [| self; "child" |] Unix.stdin Unix.stdout Unix.stderr in
      assert (snd (Unix.waitpid [] pid) = Unix.WEXITED 0);
      assert (Sys.command "echo from a shell: ${LD_PRELOAD-nothing preloaded}" = 0);
      Unix.execv self [| self; "last" |]
