(* The main thread ends before another one. *)

let () =
  let work () =
    Thread.delay 0.1;
    print_endline (string_of_int (List.length (List.init 1000 (fun i -> i))))
  in
  ignore (Thread.create work ());
  (Thread.exit [@alert "-deprecated"] [@warning "-3"]) ()
