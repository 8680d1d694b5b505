(* Closes all descriptors that it does not know, as daemons do, and says which numbers files get then. Works
   until a file exists, and says what it did. *)

let descriptor : int -> Unix.file_descr = Obj.magic
let number : Unix.file_descr -> int = Obj.magic

let () =
  for n = 3 to 4095 do
    try Unix.close (descriptor n) with Unix.Unix_error _ -> ()
  done;
  let files = List.init 4 (fun _ -> Unix.openfile "/dev/null" [ Unix.O_RDONLY ] 0) in
  List.iter (fun file -> Printf.printf "%d\n" (number file)) files;
  let lists = ref 0 in
  while not (Sys.file_exists Sys.argv.(1)) do
    lists := !lists + List.length (Sys.opaque_identity (List.init 1000 (fun i -> (i, i)))) - 999
  done;
  (* Still the same ones. *)
  List.iter (fun file -> Unix.close file) files;
  assert (!lists > 0);
  print_endline "end"
