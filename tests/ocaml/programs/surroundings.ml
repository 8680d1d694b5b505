(* What a program can see of how it was started: arguments, environment, folder, descriptors,
   signals, limits. Recording must not show. *)

let fd_number (fd : Unix.file_descr) : int = Obj.magic fd

let print_lines_with prefixes path =
  let ic = open_in path in
  (try
     while true do
       let line = input_line ic in
       if List.exists (fun p -> String.length line >= String.length p && String.sub line 0 (String.length p) = p) prefixes
       then print_endline line
     done
   with End_of_file -> ());
  close_in ic

let () =
  Array.iteri (fun i a -> if i > 0 then Printf.printf "argument %S\n" a) Sys.argv;
  Printf.printf "name %s\n" (Filename.basename Sys.executable_name);
  let env = Unix.environment () in
  Array.sort compare env;
  Array.iter (Printf.printf "environment %S\n") env;
  Printf.printf "folder %s\n" (Sys.getcwd ());
  Printf.printf "umask %o\n" (let m = Unix.umask 0 in ignore (Unix.umask m); m);
  (* The numbers that files get. *)
  let files = List.init 5 (fun _ -> Unix.openfile "/dev/null" [ Unix.O_RDONLY ] 0) in
  List.iter (fun fd -> Printf.printf "descriptor %d\n" (fd_number fd)) files;
  List.iter Unix.close files;
  print_lines_with [ "SigBlk"; "SigIgn"; "SigCgt"; "Threads"; "TracerPid" ] "/proc/self/status";
  (* Another program that this one starts sees the same. *)
  flush stdout;
  assert (Sys.command "env | sort | grep -v '^_='; ls /proc/self/fd | wc -l" = 0)
